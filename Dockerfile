# docker build -t tidepull . && docker run -p 8000:8000 -v tidepull:/data tidepull
# Where a registry can be reached, pin both by digest: docker buildx imagetools inspect python:3.11-slim
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
COPY suites ./suites
RUN python -m venv /venv
RUN /venv/bin/pip install --no-cache-dir -c constraints.txt '.[serve,postgres]'
# Kernels are compiled here, for every level of x86-64 that the building machine has.
RUN TIDEPULL_CACHE=/venv/kernels /venv/bin/tidepull warm-up --levels

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home tidepull
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH TIDEPULL_CACHE=/venv/kernels OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
RUN chown -R tidepull /data
USER tidepull
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
# Make a token first: docker run --rm -v tidepull:/data tidepull tidepull token new --tokens /data/tokens.json --agent '*' --scope admin
CMD ["tidepull", "serve", "--db", "/data", "--host", "0.0.0.0", "--port", "8000"]

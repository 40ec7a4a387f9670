"""Integrations: tidepull in other libraries (`gymnasium`, `river`, `mabwiser`), and theirs in
tidepull (`external`).

Each file needs the package of its name, which the extra `integrations` installs; none is imported
before it is used.
"""

"""Where and in which order trials run: in this process, in local workers, on a cluster."""

"""The neighbours: tidepull in other libraries (`gymnasium`, `river`, `mabwiser`), and theirs in tidepull (`guests`).

Each file needs the package of its name, behind the extra of its name; nothing here is imported until it is asked for.
"""

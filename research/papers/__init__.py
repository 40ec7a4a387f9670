"""Other papers' tables: their problems, their methods from their equations, and tidepull's policies."""

"""Exact values of positions: indices that number positions, solvers that fill tables, tables on disk."""

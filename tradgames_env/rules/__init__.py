"""Rules of the games: plain NumPy state rows and compiled kernels, behind the contract of ``contract.py``."""

"""The engine: rules, geometries, stabilizers and the compiled loops over rows. NumPy and the compiler only."""

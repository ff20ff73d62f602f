"""Networks of layers of units, learned by back-propagation."""

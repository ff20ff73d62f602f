"""k nearest neighbours: distances, the search, votes, and the learner."""

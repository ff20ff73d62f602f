"""Tuning: a search space of configurations, and a race between them in which the worse half is dropped again and again.

``space`` says which configurations there are, ``losses`` measures them by one yardstick, ``race`` drops the worse.
"""

"""One file a format. To add one, add a file with a class under ``@reader``: it is found by being here."""

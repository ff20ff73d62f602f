"""The compiled parsers: from blocks of bytes to arrays. They know nothing of files."""

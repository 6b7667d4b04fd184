"""Settings of a PostgreSQL whose data no test needs once its machine has lost its power.

Transactions are still on their way to the disk when they are acknowledged: a crash loses none.
"""

UNSAFE = {"fsync": "off", "full_page_writes": "off"}

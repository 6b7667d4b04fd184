"""`python -m earshot_client` is `earshot`."""

from earshot_client.command import main

main()

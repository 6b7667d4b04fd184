"""Run `earshot` as `python -m earshot_client`."""

from earshot_client.command import main

main()

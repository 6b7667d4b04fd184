"""What several test files share: servers, crowds, a phone written from the protocol alone."""

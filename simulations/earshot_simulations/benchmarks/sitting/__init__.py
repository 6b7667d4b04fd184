"""The benchmark `earshot bench sitting`: pages of phones in real browsers, in one sitting."""

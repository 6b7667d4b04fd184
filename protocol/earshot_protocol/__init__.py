"""What phone and server must agree on: messages, parameters, the secure sum, private mechanisms."""

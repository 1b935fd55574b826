"""Questions found by what they mean. Needs the extra `semantic`; imported only where that layer is on."""

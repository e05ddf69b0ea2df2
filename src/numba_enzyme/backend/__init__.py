"""Back ends: from differentiated IR to something that links."""

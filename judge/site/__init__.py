"""The static site: what a store says, as pages that need no server, no network and no script."""

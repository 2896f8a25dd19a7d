"""What a child is kept from: accounts, limits, what it sees, and how all of it ends."""

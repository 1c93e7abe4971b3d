"""What is known about a judge before it takes the place of people."""

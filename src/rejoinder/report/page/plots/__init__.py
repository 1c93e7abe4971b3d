"""Small plots in SVG, drawn by hand: they stand in the page, and their colours are its own."""

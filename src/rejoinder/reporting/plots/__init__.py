"""Plots in SVG, drawn by hand: those of the report's page, and what pictures share with them."""

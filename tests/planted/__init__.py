"""Bugs of every kind that has been made, planted one by one: an audit with its default settings must catch each."""

"""Speed and accuracy beside other libraries: ``python -m bench`` measures in one run and keeps the figures."""

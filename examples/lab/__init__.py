"""The attack lab's targets: naive ones that protect too little, and Hubbub, side by side."""

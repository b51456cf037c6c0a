"""Commands of the attack lab, the anonymity checkers and the tour."""

"""A mutation tester: ``operators`` makes small wrong versions of a module, ``workers`` runs its tests against each."""

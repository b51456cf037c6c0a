"""The process of one block: a supervisor, and the program in a world of its own that the supervisor builds and watches.

It is started as a script (``__main__``) and imports nothing of Hubbub, so that a program finds nothing of ours beside
itself. The supervisor (``supervisor``) makes the namespaces, forks, and traces the fork, which enters its world
(``world``), takes the filter of system calls (``filters``, from the tables in ``calls``) and loads the program
(``running``) or becomes a command. The supervisor stops its clocks (``clocks``) and, before any row comes, shuts the
doors from outside (``tracing``): code that runs beside the program could be talked out of it by the program.
"""

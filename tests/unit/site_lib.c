/* A library with one function, called NAME: the caller of whoever asks for the site (test_site.c). */
char *NAME(char *(*ask)(void));
char *NAME(char *(*ask)(void))
{
    char *volatile site = ask(); /* no jump instead of a call: there must be a frame */
    return site;
}

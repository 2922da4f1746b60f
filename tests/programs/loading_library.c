/* A library whose constructor and destructor run what the program that loads it says (loading.c). */
extern void library_comes(void), library_goes(void);

__attribute__((constructor)) static void comes(void) { library_comes(); }
__attribute__((destructor)) static void goes(void) { library_goes(); }

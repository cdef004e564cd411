/* Linked statically, so that no library can be loaded before it. */
int main(void) { return 0; }

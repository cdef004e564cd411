/* Ends at once: how it is linked is what matters. */
int main(void) { return 0; }

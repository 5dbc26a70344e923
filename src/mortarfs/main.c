/* mortarfs - runs one graph: a mount, a brick or a heal daemon. */
#include <stdio.h>

int main(void)
{
    puts("mortarfs " MORTAR_VERSION);
    return 0;
}

/* Volume files: what is parsed prints to text that parses again. */
#include "core/mem.h"
#include "graph/volfile.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct volfile *file = NULL, *again = NULL;
    struct error err;

    if (volfile_parse("fuzz", (const char *)data, size, &file, &err) < 0)
        return 0;
    char *text = volfile_print(file);
    if (text && volfile_parse("again", text, strlen(text), &again, &err) < 0)
        abort();
    volfile_free(again);
    mem_free(text);
    volfile_free(file);
    return 0;
}

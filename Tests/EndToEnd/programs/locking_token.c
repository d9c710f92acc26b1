/* A PKCS #11 module in front of another one, MODULE: its tokens lock themselves after the third wrong PIN in a row, like cards.
   Each try is one line in the file TRIES. With REPORTS it sets the flags that tell how many tries are left. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { GET_TOKEN_INFO = 7, LOGIN = 19, FUNCTIONS = 69 };  /* in a CK_FUNCTION_LIST of pointers, the first of which is the version */

static void *list[FUNCTIONS];
static unsigned long (*token_info)(unsigned long, unsigned char *);
static unsigned long (*login)(unsigned long, unsigned long, unsigned char *, unsigned long);
static int wrong;

static unsigned long counted_login(unsigned long session, unsigned long user, unsigned char *pin, unsigned long length) {
    if (user != 1) return login(session, user, pin, length);
    FILE *file = fopen(TRIES, "a");
    fputs("try\n", file);
    fclose(file);
    unsigned long status = wrong < 3 ? login(session, user, pin, length) : 0xA4;
    if (status == 0xA0) wrong++;
    if (status == 0) wrong = 0;
    return status;
}

static unsigned long flagged_info(unsigned long slot, unsigned char *info) {
    unsigned long status = token_info(slot, info), flags;
    memcpy(&flags, info + 96, sizeof flags);
    flags &= ~0x70000UL;
    if (REPORTS && wrong > 0) flags |= 0x10000;
    if (REPORTS && wrong == 2) flags |= 0x20000;
    if (REPORTS && wrong >= 3) flags |= 0x40000;
    memcpy(info + 96, &flags, sizeof flags);
    return status;
}

unsigned long C_GetFunctionList(void ***result) {
    if (list[LOGIN] == NULL) {
        unsigned long (*get)(void ***);
        void **real;
        *(void **)&get = dlsym(dlopen(MODULE, RTLD_NOW), "C_GetFunctionList");
        get(&real);
        memcpy(list, real, sizeof list);
        *(void **)&token_info = list[GET_TOKEN_INFO];
        *(void **)&login = list[LOGIN];
        list[GET_TOKEN_INFO] = (void *)flagged_info;
        list[LOGIN] = (void *)counted_login;
    }
    *result = list;
    return 0;
}

#ifndef POSTBELL_CLIBPQ_H
#define POSTBELL_CLIBPQ_H
#include <libpq-fe.h>
#endif

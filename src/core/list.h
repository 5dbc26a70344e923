/* core/list.h - intrusive doubly linked lists. The head is a node of its own; a node not on a list points to itself. */
#pragma once

#include "core/base.h"

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)  \
    {                    \
        &(name), &(name) \
    }

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_add_between_(struct list *node, struct list *prev, struct list *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void list_add_head(struct list *head, struct list *node)
{
    list_add_between_(node, head, head->next);
}

static inline void list_add_tail(struct list *head, struct list *node)
{
    list_add_between_(node, head->prev, head);
}

/* Takes the node off its list, if it is on one, and leaves it pointing to itself. */
static inline void list_del(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Moves all nodes of `from` to the end of `to`; `from` is empty afterwards. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first(head, type, member) (list_empty(head) ? NULL : list_entry((head)->next, type, member))
#define list_for_each(var, head, member)                                                      \
    for (typeof(var) var##_next_ = ((var) = list_entry((head)->next, typeof(*(var)), member), \
                                   list_entry((var)->member.next, typeof(*(var)), member));   \
         &(var)->member != (head);                                                            \
         (var) = var##_next_, var##_next_ = list_entry(var##_next_->member.next, typeof(*(var)), member))

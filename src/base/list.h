/* Lists through their items, which have pointers to the one before and the one after: NULL at the ends. */
#pragma once

#define LIST_PUSH_BY(head, item, previous_, next_)                                                                     \
	do {                                                                                                           \
		(item)->previous_ = NULL;                                                                              \
		(item)->next_ = (head);                                                                                \
		if ((item)->next_)                                                                                     \
			(item)->next_->previous_ = (item);                                                             \
		(head) = (item);                                                                                       \
	} while (0)
#define LIST_DROP_BY(head, item, previous_, next_)                                                                     \
	do {                                                                                                           \
		if ((item)->previous_)                                                                                 \
			(item)->previous_->next_ = (item)->next_;                                                      \
		else                                                                                                   \
			(head) = (item)->next_;                                                                        \
		if ((item)->next_)                                                                                     \
			(item)->next_->previous_ = (item)->previous_;                                                  \
	} while (0)

/* At the front; and from wherever it is. */
#define LIST_PUSH(head, item) LIST_PUSH_BY(head, item, previous, next)
#define LIST_DROP(head, item) LIST_DROP_BY(head, item, previous, next)

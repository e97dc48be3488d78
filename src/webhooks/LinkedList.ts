/** Where a value stands in a list. */
export interface ListNode<A> {
  readonly value: A
  isIn: boolean
  previous: ListNode<A> | undefined
  next: ListNode<A> | undefined
}

/**
 * Values in the order they came, each of which may be removed from anywhere. A `Set` has that order too, but
 * one that fills and empties all the time is made anew every so many changes, and its old tables keep
 * what they held, and each other, from the collection of short-lived objects. ADR 0123.
 */
export class LinkedList<A> {
  #first: ListNode<A> | undefined
  #last: ListNode<A> | undefined

  /** Who came first. */
  get first(): ListNode<A> | undefined {
    return this.#first
  }

  /** Behind all others. */
  add(value: A): ListNode<A> {
    const node: ListNode<A> = { value, isIn: true, previous: this.#last, next: undefined }
    if (this.#last === undefined) this.#first = node
    else this.#last.next = node
    this.#last = node
    return node
  }

  /** Once: a second time it does nothing. */
  remove(node: ListNode<A>): void {
    if (!node.isIn) return
    node.isIn = false
    if (node.previous === undefined) this.#first = node.next
    else node.previous.next = node.next
    if (node.next === undefined) this.#last = node.previous
    else node.next.previous = node.previous
    // It points to nobody any more: it may be old, and would keep the young ones alive
    node.previous = undefined
    node.next = undefined
  }

  /** The first of whom it is true. */
  find(isIt: (value: A) => boolean): A | undefined {
    let node = this.#first
    while (node !== undefined && !isIt(node.value)) node = node.next
    return node?.value
  }
}

/** A value in a list. */
export interface ListNode<A> {
  readonly value: A
  isIn: boolean
  previous: ListNode<A> | undefined
  next: ListNode<A> | undefined
}

/**
 * A doubly linked list in insertion order, with removal from anywhere. A `Set` has that order too, but a set that fills
 * and empties continuously is reallocated, and its old tables keep dead members alive in the young generation. ADR
 * 0233.
 */
export class LinkedList<A> {
  #first: ListNode<A> | undefined
  #last: ListNode<A> | undefined

  get first(): ListNode<A> | undefined {
    return this.#first
  }

  /** Appends a value. */
  add(value: A): ListNode<A> {
    const node: ListNode<A> = { value, isIn: true, previous: this.#last, next: undefined }
    if (this.#last === undefined) this.#first = node
    else this.#last.next = node
    this.#last = node
    return node
  }

  /** Removes a node. Does nothing if it was removed before. */
  remove(node: ListNode<A>): void {
    if (!node.isIn) return
    node.isIn = false
    if (node.previous === undefined) this.#first = node.next
    else node.previous.next = node.next
    if (node.next === undefined) this.#last = node.previous
    else node.next.previous = node.previous
    // An old removed node must not keep young nodes alive
    node.previous = undefined
    node.next = undefined
  }

  /** The first value that satisfies the predicate. */
  find(predicate: (value: A) => boolean): A | undefined {
    let node = this.#first
    while (node !== undefined && !predicate(node.value)) node = node.next
    return node?.value
  }
}

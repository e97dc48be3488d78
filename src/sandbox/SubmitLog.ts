/** What the simulator remembers of submits while the process lives. Not needed to poll. */
export interface SubmitCount {
  /** All submits, the refused ones too. */
  readonly attempts: number
  /** Those that bought a job. */
  readonly paid: number
}

/** Beyond this many tasks the one that came first is forgotten. */
const tasksMax = 100_000

export class SubmitLog {
  readonly #counts = new Map<string, SubmitCount>()

  of(taskId: string): SubmitCount {
    return this.#counts.get(taskId) ?? { attempts: 0, paid: 0 }
  }

  addAttempt(taskId: string): SubmitCount {
    const { attempts, paid } = this.of(taskId)
    return this.#keep(taskId, { attempts: attempts + 1, paid })
  }

  addPaid(taskId: string): SubmitCount {
    const { attempts, paid } = this.of(taskId)
    return this.#keep(taskId, { attempts, paid: paid + 1 })
  }

  #keep(taskId: string, count: SubmitCount): SubmitCount {
    this.#counts.set(taskId, count)
    for (const oldest of this.#counts.keys()) {
      if (this.#counts.size <= tasksMax) break
      this.#counts.delete(oldest)
    }
    return count
  }
}

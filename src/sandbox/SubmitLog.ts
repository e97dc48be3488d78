/** Counts of one task since the process started. */
export interface SubmitCount {
  /** All submits, including refused ones. */
  readonly attempts: number
  /** Submits that bought a job. */
  readonly paid: number
}

/** The most tasks. Beyond this number the oldest is removed. */
const tasksMax = 100_000

export class SubmitLog {
  readonly #counts = new Map<string, SubmitCount>()

  of(taskId: string): SubmitCount {
    return this.#counts.get(taskId) ?? { attempts: 0, paid: 0 }
  }

  addAttempt(taskId: string): SubmitCount {
    const { attempts, paid } = this.of(taskId)
    return this.#store(taskId, { attempts: attempts + 1, paid })
  }

  addPaid(taskId: string): SubmitCount {
    const { attempts, paid } = this.of(taskId)
    return this.#store(taskId, { attempts, paid: paid + 1 })
  }

  #store(taskId: string, count: SubmitCount): SubmitCount {
    this.#counts.set(taskId, count)
    for (const oldest of this.#counts.keys()) {
      if (this.#counts.size <= tasksMax) break
      this.#counts.delete(oldest)
    }
    return count
  }
}

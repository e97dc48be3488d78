/** Matches every text that marks a task or a call of this run. */
export const tagPattern = /chaos-\d+-[a-z]+\d+/u

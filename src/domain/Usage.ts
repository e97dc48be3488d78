/** Groupings of usage, in the order of the columns. docs/reference/usage.md */
export const usageGroups = ["day", "hour", "user", "key", "vendor", "model", "sandbox"] as const
export type UsageGroup = (typeof usageGroups)[number]

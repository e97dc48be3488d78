/** The ways to group usage, in column order. docs/reference/usage.md */
export const usageGroups = ["day", "hour", "user", "key", "vendor", "model", "sandbox"] as const
export type UsageGroup = (typeof usageGroups)[number]

/**
 * The most bytes that are read of a stream after its client has left, and the number of such streams of a user in a
 * process at which the user's new calls are refused there. docs/reference/passthrough.md#streams-left-by-their-client
 */
export const abandonedStreamBytesMax = 8 * 1024 * 1024
export const abandonedStreamsPerUserMax = 256

/**
 * A stream that its client left is read on for so many bytes at most; with so many of them in a process a user
 * begins no other call there. docs/reference/passthrough.md#streams-left-by-their-client
 */
export const abandonedStreamBytesMax = 8 * 1024 * 1024
export const abandonedStreamsPerUserMax = 256

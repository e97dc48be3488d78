interface Props {
  /** What the bar says, exact. */
  readonly name: string
  /** From 0 to 1, for the length alone. */
  readonly share: number
}

/** A part of a whole as a bar. */
export const Share = ({ name, share }: Props) => (
  <svg class="share" role="img" aria-label={name} viewBox="0 0 100 4" preserveAspectRatio="none">
    <rect class="bar-room" width="100" height="4" />
    <rect class="bar-part" width={Math.min(100, Math.max(0, share * 100))} height="4" />
  </svg>
)

import { useState } from "preact/hooks"
import { isShown, mediaPath } from "../../api/address.ts"
import type { Schemas } from "../../api/schema.ts"
import { texts } from "../../texts/en.ts"

type MediaKind = Schemas["Model"]["result"]

interface Props {
  readonly kind: MediaKind
  readonly urls: ReadonlyArray<string>
  /** The name of each item. */
  readonly nameOf?: (n: number) => string
}

const results: Readonly<Record<MediaKind, (n: number) => string>> = {
  images: texts.media.image,
  videos: texts.media.video,
  audios: texts.media.audio,
  meshes: texts.media.mesh,
  documents: texts.media.document
}

/**
 * Results, displayed, played and offered for download. Media on other hosts are only linked: the page loads nothing
 * from there.
 */
export const Media = ({ kind, nameOf = results[kind], urls }: Props) => (
  <ul class="media">
    {urls.map((url, index) => (
      <li key={url}>
        {isShown(url) ? (
          <Medium kind={kind} name={nameOf(index + 1)} src={mediaPath(url)} />
        ) : (
          <Elsewhere url={url} />
        )}
      </li>
    ))}
  </ul>
)

/** A vendor's text becomes a link only if it is a web address. */
const Elsewhere = ({ url }: { readonly url: string }) =>
  /^https?:/u.test(url) ? (
    <a href={url} rel="noopener noreferrer">
      {url} <span class="faint">({texts.media.elsewhere})</span>
    </a>
  ) : (
    <code>{url}</code>
  )

interface MediumProps {
  readonly kind: MediaKind
  readonly name: string
  readonly src: string
}

const Medium = ({ kind, name, src }: MediumProps) => {
  const [isGone, setGone] = useState(false)
  if (isGone) return <p class="faint">{texts.media.expired}</p>
  const onError = () => setGone(true)
  return (
    <figure>
      {kind === "images" && <img src={src} alt={name} loading="lazy" onError={onError} />}
      {kind === "videos" && (
        <video src={src} controls preload="metadata" aria-label={name} onError={onError} />
      )}
      {kind === "audios" && (
        <audio src={src} controls preload="metadata" aria-label={name} onError={onError} />
      )}
      {(kind === "meshes" || kind === "documents") && <p>{name}</p>}
      <figcaption>
        <a href={src} download>
          {texts.media.download}
        </a>
      </figcaption>
    </figure>
  )
}

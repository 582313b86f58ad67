/** How much one caller, and one environment, may have at a time. */
export interface Quotas {
  /** How many exports and imports one subject may have pending or running in an environment, and send at a time. */
  readonly maxOperationsPerPrincipal: number;
  /** How many archives that one subject exported are kept of an environment. */
  readonly maxArchivesPerPrincipal: number;
  /** How many archives are kept of an environment, whoever exported them. */
  readonly maxArchives: number;
  /** How many bytes those may be in all. */
  readonly maxArchiveBytesKept: number;
  /** How many uploads one subject may have waiting in an environment. */
  readonly maxUploadsPerPrincipal: number;
  /** How many bytes those may be in all. */
  readonly maxUploadBytesPerPrincipal: number;
}

/** What a field's value may consist of (RFC 9110 §5.5): visible characters, space, tab and obs-text. */
export const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

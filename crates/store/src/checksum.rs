//! CRC-64/XZ: detects every burst of up to 64 damaged bits, and all but one in 2^64 of other
//! errors.

const TABLE: [u64; 256] = table();

const fn table() -> [u64; 256] {
    // ECMA-182, bits reversed.
    const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u64;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                (value >> 1) ^ POLYNOMIAL
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// The checksum of some bytes.
pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(!0, |crc, &byte| {
        let [low, ..] = crc.to_le_bytes();
        (crc >> 8) ^ TABLE[usize::from(low ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::crc64;

    #[test]
    fn agrees_with_the_published_check_value() {
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
        assert_eq!(crc64(b""), 0);
    }
}

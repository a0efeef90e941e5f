"""The invented suppliers and parts of a generated month. Data only; every address ends in `.example`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Supplier:
    """Who sends invoices; `short` begins their invoice numbers and their domain."""

    short: str
    name: str
    vat_id: str
    currency: str

    @property
    def address(self) -> str:
        """Give the address their mails come from."""
        return f"billing@{self.short.lower()}.example"


@dataclass(frozen=True)
class Part:
    """Something to order; the price is for one unit (UN/ECE code: C62 piece, MTR metre, KGM kilogram, LTR litre)."""

    item: str
    description: str
    unit: str
    price: Decimal


BUYER_NAME = "Northgate Parts Distribution Ltd"
BUYER_VAT_ID = "IE6388047V"
BUYER_ADDRESS = "invoices@northgate-parts.example"

SUPPLIERS = (
    Supplier("ARDEN", "Arden Bearings GmbH", "DE811193231", "EUR"),
    Supplier("BRIXI", "Brixia Fluidtech S.r.l.", "IT01234567897", "EUR"),
    Supplier("COMET", "Comète Transmissions SARL", "FR40303265045", "EUR"),
    Supplier("DELTA", "Delta Seals B.V.", "NL004495445B01", "EUR"),
    Supplier("ELBER", "Elberfelder Schrauben KG", "DE136695976", "EUR"),
    Supplier("FJORD", "Fjord Hydraulikk AS", "NO977074010MVA", "NOK"),
    Supplier("GORSK", "Górska Elektronika sp. z o.o.", "PL5260001246", "PLN"),
    Supplier("HALDE", "Haldenrad Antriebe GmbH", "ATU13585627", "EUR"),
    Supplier("IBERO", "Ibero Correas S.A.", "ESA13585625", "EUR"),
    Supplier("JUTLA", "Jutland Sensors ApS", "DK13585628", "DKK"),
    Supplier("KARST", "Karst Filtration d.o.o.", "SI15012557", "EUR"),
    Supplier("LUMEN", "Lumen & Söhne Leuchten GmbH", "DE129273398", "EUR"),
)

PARTS = tuple(
    Part(item, description, unit, Decimal(price))
    for item, description, unit, price in (
        ("BRG-6204", "Deep groove ball bearing 6204-2RS", "C62", "4.85"),
        ("BRG-6308", "Deep groove ball bearing 6308-ZZ", "C62", "13.20"),
        ("BRG-32008", "Tapered roller bearing 32008 X", "C62", "17.95"),
        ("BRG-NU210", "Cylindrical roller bearing NU 210", "C62", "42.60"),
        ("BLT-SPA1250", "V-belt SPA 1250", "C62", "9.40"),
        ("BLT-HTD5M", "Timing belt HTD 5M-750-15", "C62", "16.75"),
        ("CHN-08B1", "Roller chain 08B-1", "MTR", "7.30"),
        ("CHN-16B1", "Roller chain 16B-1", "MTR", "21.85"),
        ("SEL-35527", "Shaft seal 35x52x7 NBR", "C62", "1.95"),
        ("SEL-OR70", "O-ring assortment 70 Shore", "C62", "24.90"),
        ("SCR-M8X40", "Hexagon screw M8x40 8.8 zinc plated", "C62", "0.12"),
        ("SCR-M12X60", "Hexagon screw M12x60 10.9", "C62", "0.48"),
        ("NUT-M8", "Hexagon nut M8 stainless A2", "C62", "0.09"),
        ("HYD-H2SN12", "Hydraulic hose 2SN DN12", "MTR", "8.65"),
        ("HYD-CPL38", "Quick coupling G 3/8 steel", "C62", "14.10"),
        ("HYD-OIL46", "Hydraulic oil HLP 46", "LTR", "3.15"),
        ("PNE-CYL32", "Compact cylinder 32x50", "C62", "58.00"),
        ("PNE-VLV52", "Solenoid valve 5/2 G 1/8 24 V", "C62", "36.40"),
        ("ELC-M3X15", "Control cable 3x1.5 grey", "MTR", "0.92"),
        ("ELC-CTR25", "Contactor 25 A 230 V", "C62", "31.70"),
        ("SNS-IND12", "Inductive sensor M12 PNP", "C62", "19.80"),
        ("SNS-PT100", "Resistance thermometer PT100 class A", "C62", "27.35"),
        ("FLT-HC9600", "Filter element HC9600 10 micron", "C62", "47.25"),
        ("GRS-EP2", "Bearing grease EP 2", "KGM", "6.90"),
        ("WLD-SG2", "Welding wire SG2 1.0 mm", "KGM", "2.85"),
        ("LMP-LED40", "LED machine lamp 40 W 24 V", "C62", "64.30"),
    )
)
